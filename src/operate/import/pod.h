#pragma once
// The pod of a job: the program, resources, environment and mounts of its one container.

#include "operate/import/draft.h"
#include "operate/import/taken_fields.h"

namespace systole {

// `at`: the path of its spec.
void read_pod(TakenFields& fields, const std::string& at, Draft& draft);

}  // namespace systole
