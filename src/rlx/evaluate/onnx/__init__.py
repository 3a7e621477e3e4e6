"""Policies as ONNX files: the graph, its contract, and the proof that it acts as the trained policy does."""
