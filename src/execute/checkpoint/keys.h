#pragma once
// Secrets of a checkpoint folder, by reference: "env:NAME" is an environment variable, "file:PATH" a file; what stands
// there is 64 hex digits (`openssl rand -hex 32` makes them). No secret is ever in a workload, a run's folder or a
// message.
//
// encryption   the key of which every chunk's is derived (coding.h); it also authenticates the manifest
// signing      an Ed25519 seed with which rank 0 signs the manifest. A signature, and not another MAC, because the
//              machines that read weights (serving, evaluation) then need nothing with which weights could be forged:
//              they have the public key, `trusted`
//
// A manifest that is signed names the SHA-256 of each chunk: the chunk's own name is a hash that holds against damage
// but not against somebody who wants two files to collide.

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "execute/checkpoint/crypto.h"
#include "execute/checkpoint/sealed_text.h"
#include "ground/base/result.h"

namespace systole::checkpoint {

struct KeyRefs {
  std::string encryption, signing;  // references, "" for none
  std::string trusted;              // 64 hex digits, "" for that of `signing`, or none
};

struct Keys {
  std::optional<Key256> encryption, signing, trusted;
  std::string encryption_ref;  // for messages
};

// For checkpoints that are there the hint of a missing key asks for the old one; before the first it may be made anew.
enum class KeysFor { what_is_there, a_new_run };

// Null when there are no references. Errors: invalid (no such kind of reference, no such digits), not_found (the
// variable or file is not there), io; each names the reference.
Result<std::shared_ptr<const Keys>> read_keys(const KeyRefs& refs, KeysFor what = KeysFor::what_is_there);

// `"seal":{…}` for the fields of a sealed text: the key's id and a MAC where there is an encryption key, public key and
// signature where there is a signing key. "" without keys.
std::string seal_of(const Keys* keys, const TextKind& kind, std::string_view fields);

// That a text has the seals that these keys ask for, and that they hold. REQUIRES: check_head accepted it.
// Errors: invalid (not encrypted or signed although the keys ask for it, by another key, or altered), saying which.
Status check_seal(const Keys* keys, const TextKind& kind, std::string_view text, std::string_view file);

}  // namespace systole::checkpoint
