"""A catalogue of many hosts' campaigns in PostgreSQL: figures with intervals, hosts, facts and versions, for SQL.

A campaign's file stays the truth: the catalogue is filled from files (`push`), and can be made again from them.
"""
