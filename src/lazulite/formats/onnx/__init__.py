"""ONNX models: read as data and run as functions of tensors."""

from lazulite.formats.onnx.runner import OnnxRunner as OnnxRunner
