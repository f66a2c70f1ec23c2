DELETE FROM tare.campaign WHERE id = %(id)s
