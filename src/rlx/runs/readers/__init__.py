"""What other programs log, one kind a file: JSON lines, CSV, TensorBoard events, printed lines."""
