#pragma once
// Quotes user text so that the target's parser returns exactly the same text.

#include <string>
#include <string_view>

#include "ground/base/result.h"
#include "ground/base/shell_quoted.h"  // shell_word

namespace systole {

// A value of env, command or args of a pod; prevents Kubernetes from substituting $(NAME).
std::string kube_value(std::string_view text);
// Text of a comment after '#': unprintable characters become spaces.
std::string comment_text(std::string_view text);
// A value of an #SBATCH line. Its quoting differs between Slurm versions, so only letters, digits and some signs are
// allowed. Errors: invalid, naming `option`.
Result<std::string> sbatch_value(std::string_view option, std::string_view text);

// A quoted Dockerfile word without substitution. Errors: invalid, naming `key`: a character that no line can hold.
Result<std::string> docker_word(std::string_view key, std::string_view text);

}  // namespace systole
