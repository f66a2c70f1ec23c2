"""What tare makes on the host: journalled before it exists, named by closed rules, removed by one remover a kind."""
