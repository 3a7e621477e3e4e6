from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from rlx.runs import process


def test_this_process_is_alive_and_reads_back_from_its_document() -> None:
    me = process.current()

    assert me.pid == os.getpid()
    assert process.is_alive(me) is True
    assert process.from_document(me.document()) == me


def test_a_killed_process_is_gone_also_while_it_is_a_zombie() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = process.identify(child.pid)
    assert process.is_alive(identity) is True
    child.send_signal(signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)

    assert process.is_alive(identity) is False
    child.communicate()
    assert process.is_alive(identity) is False


def test_a_pid_that_was_given_to_another_process_is_not_the_same_process() -> None:
    me = process.current()

    assert process.is_alive(process.Process(me.place, me.pid, "12345")) is False


def test_a_process_of_another_machine_or_boot_cannot_be_told() -> None:
    me = process.current()

    assert process.is_alive(process.Process("elsewhere", me.pid, me.started)) is None


@pytest.mark.parametrize(
    "document",
    [None, [], {}, {"place": "x"}, {"place": "x", "pid": "many", "started": "1"}, {"pid": 1, "started": "2"}],
)
def test_a_document_that_holds_no_identity_reads_as_none(document: object) -> None:
    assert process.from_document(document) is None
