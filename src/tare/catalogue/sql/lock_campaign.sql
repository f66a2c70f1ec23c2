SELECT pg_advisory_xact_lock(hashtext('tare.campaign'), hashtext(%(id)s))
