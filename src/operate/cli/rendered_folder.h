#pragma once
// A folder of rendered files: what was written there before is known, so that neither the files of another run nor what
// somebody edited is lost, and none is left of a rendering before. `.rendered` lists them:
//
//   {"run": "bert", "files": {"job.sbatch": "SHA256"}}

#include <string>
#include <vector>

#include "ground/base/result.h"
#include "operate/render/render.h"

namespace systole::cli {

struct WrittenFiles {
  std::vector<std::string> replaced, removed;  // of a rendering before: with another text, and no longer part of it
};

// `replace`: whatever is there goes.
// Errors: exists: files of another run, one that was edited, one that render did not write; io.
Result<WrittenFiles> write_rendered(const Rendered& rendered, const std::string& folder, bool replace);

}  // namespace systole::cli
