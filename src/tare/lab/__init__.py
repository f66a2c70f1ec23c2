"""The lab: a throwaway virtual machine that is a host of its own, with tare inside (see docs/lab.md)."""
