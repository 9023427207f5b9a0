"""Fits of tables on several machines, through a Dask cluster: the only folder that imports Dask.
Imported by name, since it needs the extra ``dask``.

ClusterLost  The cluster, or too many of its workers, went away during a fit
DaskRows     Rows of a table in parts, each encoded and kept by a worker of a cluster
connected    A client of a cluster, over TLS
"""

from hushfit.dask._client import connected
from hushfit.dask._rows import ClusterLost, DaskRows

__all__ = ["ClusterLost", "DaskRows", "connected"]
