#pragma once
// Secrets of a checkpoint folder, by reference: "env:NAME" is an environment variable, "file:PATH" a file. The value is
// 64 hex digits (`openssl rand -hex 32` makes them). A secret never appears in a workload, a run's folder or a message.
//
// encryption   the key from which every chunk's key is derived (coding.h); it also authenticates the manifest
// signing      an Ed25519 seed; rank 0 signs the manifest with it. It is a signature rather than a second MAC so that
//              machines that only read weights (serving, evaluation) cannot forge them: they hold only the public key,
//              `trusted`
//
// A signed manifest has the SHA-256 of each chunk: the chunk's name is a hash that detects damage but does not resist
// deliberate collisions.

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
  std::string trusted;              // 64 hex digits; "": the public key of `signing`, or none
};

struct Keys {
  std::optional<Key256> encryption, signing, trusted;
  std::string encryption_ref;  // for messages
};

// Chooses the hint for a missing key: if checkpoints exist, use the old key; before the first one, a new key is fine.
enum class KeysFor { what_is_there, a_new_run };

// Null if there are no references. Errors: invalid (unknown kind of reference, or not 64 hex digits), not_found (no
// such variable or file), io; each names the reference.
Result<std::shared_ptr<const Keys>> read_keys(const KeyRefs& refs, KeysFor what = KeysFor::what_is_there);

// `"seal":{…}` for the fields of a sealed text: the key's id and a MAC if there is an encryption key, the public key
// and a signature if there is a signing key. "" without keys.
std::string seal_of(const Keys* keys, const TextKind& kind, std::string_view fields);

// Checks that a text has the seals that these keys require, and that they are valid. REQUIRES: check_head accepted it.
// Errors: invalid (not encrypted or signed although required, by another key, or altered), saying which.
Status check_seal(const Keys* keys, const TextKind& kind, std::string_view text, std::string_view file);

}  // namespace systole::checkpoint
