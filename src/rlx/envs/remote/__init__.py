"""Environments in another process: a study's learner never runs a candidate's code itself.

`env_process.EnvProcess` is the learner's end, `rlx.train.env_server` the other one. They exchange numbers: actions,
observations, rewards and flags in shared memory, everything else in the frames of `wire`. The learner checks what it
gets and unpickles nothing. `remote_env` has the environments as the learner sees them.
"""
