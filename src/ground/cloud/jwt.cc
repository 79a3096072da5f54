#include "ground/cloud/jwt.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <memory>

#include "ground/base/base64.h"

namespace systole {
namespace {

std::string base64url(std::string_view bytes) {
  std::string text = to_base64(bytes);
  while (text.ends_with('=')) text.pop_back();
  for (char& c : text) c = c == '+' ? '-' : c == '/' ? '_' : c;
  return text;
}

template <auto free>
struct Frees {
  template <typename T>
  void operator()(T* held) const {
    free(held);
  }
};
using HeldKey = std::unique_ptr<EVP_PKEY, Frees<EVP_PKEY_free>>;
using HeldBio = std::unique_ptr<BIO, Frees<BIO_free_all>>;
using HeldDigest = std::unique_ptr<EVP_MD_CTX, Frees<EVP_MD_CTX_free>>;

int no_password(char*, int, int, void*) { return -1; }

Result<std::string> rs256(std::string_view text, const std::string& pem) {
  const HeldBio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  const HeldKey key(bio ? PEM_read_bio_PrivateKey(bio.get(), nullptr, no_password, nullptr) : nullptr);
  if (!key || EVP_PKEY_base_id(key.get()) != EVP_PKEY_RSA)
    return error(ErrorKind::invalid, "its private_key is no RSA key in PEM, or has a password");
  const HeldDigest digest(EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t size = 0;
  std::string signature;
  bool good = digest && EVP_DigestSignInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
              EVP_DigestSign(digest.get(), nullptr, &size, bytes, text.size()) == 1;
  signature.resize(size);
  good = good && EVP_DigestSign(digest.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                                text.size()) == 1;
  if (!good) return error(ErrorKind::invalid, "its private_key signs nothing");
  signature.resize(size);
  return signature;
}

}  // namespace

Result<std::string> signed_jwt(const Node& header, const Node& claims, const std::string& key) {
  std::string text = base64url(to_json(header)) + "." + base64url(to_json(claims));
  const std::string signature = TRY(rs256(text, key));
  return text + "." + base64url(signature);
}

}  // namespace systole
