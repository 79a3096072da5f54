#pragma once
// The files of a registered model (operate/registry): their hashes, and whether they are still those.

#include <map>
#include <optional>
#include <string>

#include "execute/checkpoint/restore.h"
#include "operate/registry/registered_model.h"
#include "operate/run/run_places.h"

namespace systole {

// The argument that finds it without the registry: "runs/tiny-1@100", or the path of a published model.
std::string argument_of(const RegisteredModel& model);

// SHA-256 by file. Of a checkpoint its manifest, which has the hashes of its chunks, and the run's tokenizer, if it has
// one. Errors: as checkpoint::read_manifest; io.
Result<std::map<std::string, std::string>> hashes_of_checkpoint(const CheckpointPlace& place, std::int64_t step,
                                                                const std::string& run);
// Of a published model all files in its folder, except those whose path has a name that begins with '.', and those behind
// a link to another folder; or its GGUF file. Reads all of them. Errors: not_found, io.
Result<std::map<std::string, std::string>> hashes_of_folder(const std::string& path);

struct ArtifactState {
  enum class Kind { intact, changed, gone };
  Kind kind = Kind::intact;
  std::string why = {};  // of what is not intact
};
const char* name_of(ArtifactState::Kind kind);
// `verify`: of a checkpoint's chunks; opening it to serve verifies their contents anyway. Errors: those of reading, if
// it cannot be told: io, a key that is not there.
Result<ArtifactState> artifact_state(const RegisteredModel& model, checkpoint::Verify verify);

// The same where the model is wanted: one that is not intact is an error. Errors: also corrupt, not_found.
Status check_artifact(const RegisteredModel& model, checkpoint::Verify verify);

}  // namespace systole
