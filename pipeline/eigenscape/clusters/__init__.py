"""Clusters: their files, how each kind is brought up, what runs on them and what can go wrong.

::

    options.py      the keys of a cluster file      loading.py    reading one, saying what is wrong
    executors.py    tasks on threads                workers.py    tasks on Dask workers
    start.py        each kind to its workers        supply.py     lost workers are replaced
    jobqueue.py     submit scripts of each kind     allocation.py inside an allocation of SLURM
    ssh.py          machines reached by ssh         worker.py     what starts on a node
    network.py      addresses, encryption           check.py      ``eigenscape cluster check``
    versions.py     versions on both sides
"""
