#pragma once
// Text of a user's, written so that the reader of a target gives back the same text and nothing else.

#include <string>
#include <string_view>

#include "ground/base/result.h"

namespace systole {

// One word of sh. REQUIRES: no NUL, which no word can hold.
std::string shell_word(std::string_view text);
// A value of env, command or args of a pod, in which Kubernetes would put a variable in the place of $(NAME).
std::string kube_value(std::string_view text);
// The rest of a line behind '#': what is no printable character becomes a space.
std::string comment_text(std::string_view text);
// A value of an #SBATCH line, whose quoting differs between Slurm's versions: only letters, digits and some signs.
// Errors: invalid, naming `option`.
Result<std::string> sbatch_value(std::string_view option, std::string_view text);

// A word of a Dockerfile, in quotes, in which nothing is put in. Errors: invalid, naming `key`: a character that no
// line of one holds.
Result<std::string> docker_word(std::string_view key, std::string_view text);

}  // namespace systole
