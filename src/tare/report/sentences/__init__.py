"""The one place where what analysis returns, codes and numbers, becomes sentences; nothing reads them back.

A module by what it speaks of: ``verdicts``, ``notes`` (what stands beside them), ``fairness``, ``refusals`` (why data
have no answer), ``published`` (the studies); ``wording`` has the phrases of a metric, ``numbers`` its figures.
"""
