"""When an instance is up, seen from outside: threads that wait for its first bytes, packets and answers."""
