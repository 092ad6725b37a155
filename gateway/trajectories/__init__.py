"""Offline compression of finished runs, so that they fit a training length."""

from gateway.trajectories.compressor import TrajectoryCompressor
from gateway.trajectories.region import TrajectorySettings

__all__ = ["TrajectoryCompressor", "TrajectorySettings"]
