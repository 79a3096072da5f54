#pragma once
// The commands of `systole ckpt` that rewrite or are about keys, and the options about keys that all of them have.

#include "execute/checkpoint/keys.h"
#include "operate/cli/command.h"

namespace systole::cli {

void add_key_options(CLI::App& command, checkpoint::KeyRefs& keys);
void add_ckpt_reshard(CLI::App& group, Context& context);
void add_ckpt_public_key(CLI::App& group, Context& context);

}  // namespace systole::cli
