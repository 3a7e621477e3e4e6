"""The ONE door: runs are started, supervised, stopped and resumed here."""
