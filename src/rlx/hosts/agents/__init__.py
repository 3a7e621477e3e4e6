"""What coding agents get from rlx: the plug-in, its skills and the installer."""
