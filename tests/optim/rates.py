"""Learning rates that a scheduler sets, step after step."""


def rates(optimizer, scheduler, count):
    found = []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found
