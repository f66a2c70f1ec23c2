"""The one place where what analysis returns, codes and numbers, becomes sentences; nothing reads them back.

A module by what it speaks of: ``verdicts``, ``signs`` (verdicts in tables), ``notes`` (what stands beside them),
``answers`` and ``dimensions`` (of a platform as a whole), ``refusals`` (why data have no answer), ``captions`` (of
tables and drawings); ``page``, ``page_method``, ``footprint_page`` and ``words`` are the page's alone, and may have its
markup; ``wording`` has the phrases of a metric, ``numbers`` its figures.
"""
