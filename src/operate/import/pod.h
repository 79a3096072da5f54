#pragma once
// The pod of a job: its one container's program, resources, environment and mounts.

#include "operate/import/draft.h"
#include "operate/import/taken_fields.h"

namespace systole {

// `at`: the path of its spec.
void read_pod(TakenFields& fields, const std::string& at, Draft& draft);

}  // namespace systole
