"""Sandboxes that the Linux kernel enforces: files, network, signals and limits of a process.

They use Landlock, seccomp, namespaces and rlimits through ctypes, without a dependency, as root and unprivileged.
`spec.SandboxSpec` says what a process may reach. `popen.run` and `popen.start` start a program in a sandbox, below a
small parent process that kills everything the program leaves behind. `spec.enter` puts the current process into one
for good. `self_test` tries what the kernel really denies: rlx reports that and assumes nothing.

Not covered: see `spec.not_covered`, which every `Enforcement` repeats. A process outside the sandbox under the same
account can change rlx itself.
"""
