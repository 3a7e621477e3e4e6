"""What the standing figures are measured with."""
