"""Offline compression of finished runs, so that they fit a training length."""

from gateway.trajectory.compressor import TrajectoryCompressor
from gateway.trajectory.region import TrajectorySettings

__all__ = ["TrajectoryCompressor", "TrajectorySettings"]
