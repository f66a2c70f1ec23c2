"""The start of an instance, seen from outside: threads that wait for its first bytes, packets and answers."""
