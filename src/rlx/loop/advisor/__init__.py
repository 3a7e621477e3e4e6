"""One bounded improvement round: findings propose variants, which are trained, raced and confirmed."""
