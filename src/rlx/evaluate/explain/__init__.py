"""Why a policy acts as it does: which inputs it uses, and which earlier observations."""
