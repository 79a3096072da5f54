#pragma once
// Commands of `systole ckpt` that rewrite checkpoints or are about keys, and the key options that all of them have.

#include "execute/checkpoint/keys.h"
#include "operate/cli/command.h"

namespace systole::cli {

void add_key_options(Subcommand command, checkpoint::KeyRefs& keys);
void add_ckpt_reshard(Subcommand group, Context& context);
void add_ckpt_public_key(Subcommand group, Context& context);

}  // namespace systole::cli
