"""Programs that perfrun measures: the worker, its adapters, and the export of models to ONNX."""

__version__ = "0.1.0"
