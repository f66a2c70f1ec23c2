"""Things that tare makes on the host: journaled before they exist, named by rules, removed by one remover a kind."""
