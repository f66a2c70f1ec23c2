SELECT host, trials, record FROM tare.campaign WHERE id = %(id)s FOR UPDATE
