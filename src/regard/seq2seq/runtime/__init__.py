"""Running an exported model with NumPy alone: no PyTorch, no safetensors.

====================  ================================================================
``exported.py``       the file: a header, and named arrays
``numbers.py``        how the weights are stored: float32, float16, int8
``encoder.py``        source symbols to encoder states
``cells.py``          GRU and LSTM, a step at a time
``attention.py``      the scores and their weights
``decoder.py``        the decoders of :mod:`regard.nn`, a step at a time
``luong.py``          Luong's among them
``model.py``          all of it, for searches
``alone.py``          the greedy search for one source, of the usual model, faster
``follow.py``         searches that follow one sequence
``beam.py``           beam search
``again.py``          where answers that are known looked
``transducer.py``     text in, text out
``onnx_model.py``     the same with onnxruntime, for files of ONNX
``seal.py``           the check sum in a file of ONNX
====================  ================================================================
"""
