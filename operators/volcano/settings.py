"""Settings of Volcano."""

from __future__ import annotations

from config.schema.operators import ChartSettings


class VolcanoSettings(ChartSettings):
    """Who may drive whom out."""

    preemption: bool = False
    """Whether pods of a higher priority class take the GPUs of those of a lower one; else priorities only order those
    that wait.
    """

    @property
    def preempts(self) -> bool:
        return self.preemption
