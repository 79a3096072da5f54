#pragma once
// A folder of rendered files. It records what it wrote, so files of another run and edited files are not lost, and
// stale files of an earlier rendering are removed. `.rendered` lists them:
//
//   {"run": "bert", "files": {"job.sbatch": "SHA256"}}

#include <string>
#include <vector>

#include "ground/base/result.h"
#include "operate/render/render.h"

namespace systole {

struct WrittenFiles {
  std::vector<std::string> replaced, removed;  // of the earlier rendering: changed, and no longer part of it
};

// `replace`: overwrites whatever is there. Errors: exists: files of another run, an edited file, a file that render did
// not write; io.
Result<WrittenFiles> write_rendered(const Rendered& rendered, const std::string& folder, bool replace);

}  // namespace systole
