#include "execute/checkpoint/keys.h"

#include <algorithm>
#include <cstdlib>

#include "ground/base/shell_quoted.h"
#include "ground/base/text_file.h"

namespace systole::checkpoint {

namespace {

constexpr std::string_view kSeal = ",\n\"seal\":";

bool is_variable(const std::string& ref) { return ref.starts_with("env:"); }
std::string name_in(const std::string& ref) { return ref.substr(ref.find(':') + 1); }

// The hint for a missing key. A new key cannot open what another one closed.
std::string remedy(const std::string& ref, KeysFor what) {
  const std::string name = name_in(ref);
  if (what == KeysFor::a_new_run)
    return is_variable(ref) ? fmt::format("export {}=$(openssl rand -hex 32)", name)
                            : fmt::format("(umask 077; openssl rand -hex 32 > {})", shell_quoted(name));
  return is_variable(ref) ? fmt::format("export {} with the value that the run was begun with", name)
                          : fmt::format("put the key that the run was begun with into {}", name);
}

Error without_key(Error why, const std::string& ref, KeysFor what) {
  if (what == KeysFor::a_new_run) why.message += "; make one and keep it: without it no checkpoint opens";
  return std::move(why).hinted(remedy(ref, what));
}

Result<std::string> text_behind(const std::string& ref, KeysFor what) {
  if (is_variable(ref)) {
    const char* text = std::getenv(name_in(ref).c_str());
    if (text) return std::string(text);
    return without_key(error(ErrorKind::not_found, "the key {} is not there: no such environment variable", ref), ref,
                       what);
  }
  if (ref.starts_with("file:")) {
    Result<std::string> text = read_secret_file(name_in(ref), kKiB * 64);
    if (!text.ok()) {
      Error why = std::move(text).error();
      why.message = fmt::format("the key {}: {}", ref, why.message);
      return why.kind == ErrorKind::not_found ? without_key(std::move(why), ref, what) : why;
    }
    constexpr const char* kSpace = " \t\r\n";
    const std::size_t begin = text->find_first_not_of(kSpace);
    if (begin == text->npos)
      return without_key(error(ErrorKind::invalid, "the key {} is an empty file", ref), ref, what);
    return text->substr(begin, std::min(text->find_first_of(kSpace, begin), text->size()) - begin);
  }
  return error(ErrorKind::invalid, "'{}' is no reference to a key", ref).hinted("env:NAME or file:PATH");
}

Result<Key256> read_secret(const std::string& ref, KeysFor what) {
  const std::string text = TRY(text_behind(ref, what));
  const auto key = key_from_hex(text);
  if (key) return *key;
  return without_key(error(ErrorKind::invalid, "the key {} is no key: it has {} characters that are not 64 hex digits",
                           ref, text.size()),
                     ref, what);
}

Key256 mac_key(const Keys& keys) { return derive(*keys.encryption, Key256{}, "systole manifest"); }

// Identifies a key without revealing it.
std::string key_id(const Keys& keys) {
  return to_hex_text(derive(*keys.encryption, Key256{}, "systole key id")).substr(0, 16);
}

std::string signed_text(const TextKind& kind, std::string_view fields) {
  return fmt::format("{} {}\n{}", kind.format, kind.version, fields);
}

struct Seal {
  std::string key, mac, open, signature;
};

// A text's fields and its seal.
struct Opened {
  std::string_view fields;
  Seal seal;
};

Result<Opened> split(std::string_view text, std::string_view file) {
  const std::string_view rest = text.substr(text.find('\n') + 1);
  const std::size_t at = rest.rfind(kSeal);
  if (at == rest.npos) return Opened{rest.substr(0, rest.rfind('}')), {}};
  Opened opened{rest.substr(0, at), {}};
  std::string_view json = rest.substr(at + kSeal.size());
  json = json.substr(0, json.rfind('}'));  // the closing brace of the whole document
  const Node seal = TRY(parse_json(json, file));
  const auto word = [&](std::string_view key) {
    const Node* node = seal.find(key);
    return node ? node->text() : std::string();
  };
  opened.seal = {word("key"), word("mac"), word("public"), word("signature")};
  return opened;
}

Status check_mac(const Keys& keys, const Opened& opened, const std::string& text) {
  if (opened.seal.mac.empty()) {
    return error(ErrorKind::invalid, "this checkpoint is not encrypted, and the key {} asks for one that is",
                 keys.encryption_ref)
        .hinted("without checkpoint.encryption_key it can be read");
  }
  if (opened.seal.key != key_id(keys)) {
    return error(ErrorKind::invalid, "wrong key: this checkpoint was encrypted with key {}, and {} is key {}",
                 opened.seal.key, keys.encryption_ref, key_id(keys))
        .hinted(remedy(keys.encryption_ref, KeysFor::what_is_there));
  }
  const auto mac = key_from_hex(opened.seal.mac);
  if (mac && equal(*mac, hmac_sha256(mac_key(keys), text))) return {};
  return error(ErrorKind::invalid, "the manifest was altered after it was written (its MAC does not hold)");
}

Status check_signature(const Keys& keys, const Opened& opened, const std::string& text) {
  const std::string trusted = to_hex_text(*keys.trusted);
  if (opened.seal.signature.empty()) {
    return error(ErrorKind::invalid, "this checkpoint is not signed, and only those by {} are trusted", trusted);
  }
  if (opened.seal.open != trusted) {
    return error(ErrorKind::invalid, "this checkpoint is signed by {}, and only those by {} are trusted",
                 opened.seal.open, trusted);
  }
  const auto signature = signature_from_hex(opened.seal.signature);
  if (signature && is_signed(*keys.trusted, text, *signature)) return {};
  return error(ErrorKind::invalid, "the manifest was altered after it was signed");
}

}  // namespace

Result<std::shared_ptr<const Keys>> read_keys(const KeyRefs& refs, KeysFor what) {
  if (refs.encryption.empty() && refs.signing.empty() && refs.trusted.empty()) return std::shared_ptr<const Keys>();
  auto keys = std::make_shared<Keys>();
  keys->encryption_ref = refs.encryption;
  if (!refs.encryption.empty()) keys->encryption = TRY(read_secret(refs.encryption, what));
  if (!refs.signing.empty()) {
    keys->signing = TRY(read_secret(refs.signing, what));
    keys->trusted = public_key_of(*keys->signing);
  }
  if (!refs.trusted.empty()) {
    keys->trusted = key_from_hex(refs.trusted);
    if (!keys->trusted) {
      return error(ErrorKind::invalid, "'{}' is no public key (64 hex digits)", refs.trusted)
          .hinted("`systole ckpt public-key REFERENCE` prints that of a signing key");
    }
  }
  return std::shared_ptr<const Keys>(std::move(keys));
}

std::string seal_of(const Keys* keys, const TextKind& kind, std::string_view fields) {
  if (!keys || (!keys->encryption && !keys->signing)) return "";
  const std::string text = signed_text(kind, fields);
  std::string members;
  if (keys->encryption) {
    members = fmt::format(R"("key":"{}","mac":"{}")", key_id(*keys), to_hex_text(hmac_sha256(mac_key(*keys), text)));
  }
  if (keys->signing) {
    members += fmt::format(R"({}"public":"{}","signature":"{}")", members.empty() ? "" : ",",
                           to_hex_text(public_key_of(*keys->signing)), to_hex_text(sign(*keys->signing, text)));
  }
  return fmt::format("{}{{{}}}", kSeal, members);
}

Status check_seal(const Keys* keys, const TextKind& kind, std::string_view text, std::string_view file) {
  if (!keys) return {};
  const Opened opened = TRY(split(text, file));
  const std::string covered = signed_text(kind, opened.fields);
  auto well = keys->encryption ? check_mac(*keys, opened, covered) : Status();
  if (well && keys->trusted) well = check_signature(*keys, opened, covered);
  if (well) return well;
  return std::move(well).error().at({std::string(file)});
}

}  // namespace systole::checkpoint
