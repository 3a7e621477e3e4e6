"""The lab: an agent works unattended on two files, and a study decides what counts as better."""
