"""Exporters: a run's metrics in the formats of other tools, one file per tool."""
