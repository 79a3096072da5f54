#pragma once
// A job of `systole batch` where a command takes a workload: what `render` makes of it.

#include <optional>

#include "operate/render/batch_task.h"
#include "operate/run/workload_arguments.h"

namespace systole {

struct BatchDocument {
  BatchTask task;
  Workload workload;  // the keys of `cluster`, with a command that stands for the job
};

// Nothing: the file is no job of a batch, as it has no `input` and `output`. Errors: those of the job, and of the keys of
// `cluster`, at their places.
Result<std::optional<BatchDocument>> batch_document(const WorkloadArguments& arguments);

}  // namespace systole
