"""Making of a trained model what runs elsewhere: NumPy, ONNX."""
