// Tokens of Google's against servers that answer as its OAuth server, IAM and metadata server do.

#include "ground/cloud/google_credentials.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "ground/base/base64.h"
#include "ground/base/document.h"
#include "ground/base/testing/files.h"
#include "ground/net/testing/http_stub.h"

namespace systole {
namespace {

// A new key pair, and a check of what its private half signed.
struct KeyPair {
  EVP_PKEY* key = EVP_RSA_gen(2048);
  ~KeyPair() { EVP_PKEY_free(key); }
  std::string pem() const {
    BIO* bio = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
    char* text = nullptr;
    std::string copy(static_cast<std::size_t>(BIO_get_mem_data(bio, &text)), ' ');
    copy.assign(text, copy.size());
    BIO_free(bio);
    return copy;
  }
  bool signed_it(const std::string& text, const std::string& signature) const {
    EVP_MD_CTX* digest = EVP_MD_CTX_new();
    const auto* sig = reinterpret_cast<const unsigned char*>(signature.data());
    const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
    const bool good = EVP_DigestVerifyInit(digest, nullptr, EVP_sha256(), nullptr, key) == 1 &&
                      EVP_DigestVerify(digest, sig, signature.size(), bytes, text.size()) == 1;
    EVP_MD_CTX_free(digest);
    return good;
  }
};

std::string of_base64url(std::string text) {
  for (char& c : text) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (text.size() % 4 != 0) text += '=';
  return from_base64(text).value();
}

// Google, as far as tokens go. It gives "token-1", "token-2", …
class Google {
 public:
  std::string url() const { return server_.url(); }
  std::string host() const { return fmt::format("127.0.0.1:{}", server_.port()); }
  std::vector<StubRequest> requests;
  int status = 200;
  std::string refusal = R"({"error": "invalid_grant", "error_description": "Token has been expired or revoked."})";

 private:
  void answer(const StubRequest& request, StubAnswer& to) {
    requests.push_back(request);
    if (status != 200) return to.whole(status, refusal);
    const std::string token = fmt::format("token-{}", requests.size());
    if (request.path.ends_with(":generateAccessToken"))
      return to.whole(200, fmt::format(R"({{"accessToken": "{}", "expireTime": "2000-01-01T01:00:00Z"}})", token));
    to.whole(200, fmt::format(R"({{"access_token": "{}", "expires_in": 3599, "token_type": "Bearer"}})", token));
  }
  StubServer server_{[this](const StubRequest& request, StubAnswer& to) { answer(request, to); }};
};

class Credentials : public testing::Test {
 protected:
  std::string file(const std::string& name, const Node& content, mode_t mode = 0600) {
    const std::string path = folder_.path() + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path) << to_json(content);
    ::chmod(path.c_str(), mode);
    return path;
  }
  std::shared_ptr<BearerSource> bearer() {
    GooglePlace place;
    place.variables = [this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      return found == variables_.end() ? std::nullopt : std::optional(found->second);
    };
    place.clock = clock_;
    return google_bearer(std::move(place));
  }
  Node service_account() {
    return Node::map({{"type", "service_account"},
                      {"client_email", "me@p.iam.gserviceaccount.com"},
                      {"private_key_id", "k1"},
                      {"private_key", keys_.pem()},
                      {"token_uri", google_.url() + "/token"}});
  }

  TemporaryFolder folder_;
  Google google_;
  KeyPair keys_;
  std::shared_ptr<FakeClock> clock_ = std::make_shared<FakeClock>();
  std::map<std::string, std::string> variables_ = {{"HOME", folder_.path()}};
};

TEST_F(Credentials, a_service_account_signs_who_it_is) {
  variables_["GOOGLE_APPLICATION_CREDENTIALS"] = file("key.json", service_account());
  const auto source = bearer();
  EXPECT_EQ(source->token().value(), "token-1");
  EXPECT_EQ(source->token().value(), "token-1") << "as long as it lasts";
  ASSERT_EQ(google_.requests.size(), 1u);
  const std::string& form = google_.requests[0].body;
  const std::string jwt = form.substr(form.find("assertion=") + 10);
  EXPECT_TRUE(form.starts_with("grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&"));
  const std::size_t first = jwt.find('.'), second = jwt.rfind('.');
  EXPECT_TRUE(keys_.signed_it(jwt.substr(0, second), of_base64url(jwt.substr(second + 1))));
  const Node header = parse_json(of_base64url(jwt.substr(0, first)), "header").value();
  EXPECT_EQ(header.text_at("alg") + header.text_at("kid"), "RS256k1");
  const Node claims = parse_json(of_base64url(jwt.substr(first + 1, second - first - 1)), "claims").value();
  EXPECT_EQ(claims.text_at("iss"), "me@p.iam.gserviceaccount.com");
  EXPECT_EQ(claims.text_at("aud"), google_.url() + "/token");
  EXPECT_EQ(claims.text_at("iat"), "946684800");
  EXPECT_EQ(claims.text_at("exp"), "946688400");
  clock_->advance(Seconds(3500.0));
  EXPECT_EQ(source->token().value(), "token-2");
}

TEST_F(Credentials, a_user_of_gcloud_and_who_acts_for_another) {
  const Node user = Node::map({{"type", "authorized_user"},
                               {"client_id", "id"},
                               {"client_secret", "s/crt"},
                               {"refresh_token", "1//refresh"},
                               {"token_uri", google_.url() + "/token"}});
  file(".config/gcloud/application_default_credentials.json", user);
  EXPECT_EQ(bearer()->token().value(), "token-1");
  EXPECT_EQ(google_.requests[0].body,
            "grant_type=refresh_token&client_id=id&client_secret=s%2Fcrt&refresh_token=1%2F%2Frefresh");
  const std::string url = google_.url() + "/v1/projects/-/serviceAccounts/other@p:generateAccessToken";
  variables_["CLOUDSDK_CONFIG"] = folder_.path() + "/other";
  file("other/application_default_credentials.json", Node::map({{"type", "impersonated_service_account"},
                                                                {"service_account_impersonation_url", url},
                                                                {"source_credentials", user}}));
  EXPECT_EQ(bearer()->token().value(), "token-3");
  EXPECT_EQ(google_.requests[2].header("authorization"), "Bearer token-2");
  EXPECT_NE(google_.requests[2].body.find("cloud-platform"), std::string::npos);
}

TEST_F(Credentials, a_machine_of_google_has_a_metadata_server) {
  variables_["GCE_METADATA_HOST"] = google_.host();
  EXPECT_EQ(bearer()->token().value(), "token-1");
  EXPECT_EQ(google_.requests[0].path, "/computeMetadata/v1/instance/service-accounts/default/token");
  EXPECT_EQ(google_.requests[0].header("metadata-flavor"), "Google");
  google_.status = 404;
  const auto none = bearer()->token();
  EXPECT_NE(none.error().message.find("has no service account"), std::string::npos) << none.error().message;
}

TEST_F(Credentials, a_token_may_be_given) {
  variables_["CLOUDSDK_AUTH_ACCESS_TOKEN_FILE"] = folder_.path() + "/token";
  std::ofstream(folder_.path() + "/token") << "ya29.x\n";
  ::chmod((folder_.path() + "/token").c_str(), 0600);
  const auto source = bearer();
  EXPECT_EQ(source->token().value(), "ya29.x");
  std::ofstream(folder_.path() + "/token") << "ya29.y\n";
  clock_->advance(Seconds(301.0));
  EXPECT_EQ(source->token().value(), "ya29.y");
  variables_["CLOUDSDK_AUTH_ACCESS_TOKEN"] = "ya29.z";
  EXPECT_EQ(bearer()->token().value(), "ya29.z");
  variables_["CLOUDSDK_AUTH_DISABLE_CREDENTIALS"] = "true";
  EXPECT_EQ(bearer()->token().value(), "");
  EXPECT_TRUE(google_.requests.empty());
}

TEST_F(Credentials, secrets_stay_secret) {
  variables_["GOOGLE_APPLICATION_CREDENTIALS"] = file("key.json", service_account(), 0644);
  const Error open = bearer()->token().error();
  EXPECT_EQ(open.kind, ErrorKind::invalid);
  EXPECT_NE(open.hint.find("chmod 600"), std::string::npos);

  variables_["GOOGLE_APPLICATION_CREDENTIALS"] = file("key.json", service_account());
  google_.status = 400;
  const std::string refused = to_string(bearer()->token().error());
  EXPECT_NE(refused.find("expired or revoked"), std::string::npos) << refused;
  EXPECT_NE(refused.find("gcloud auth application-default login"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("PRIVATE"), std::string::npos) << refused;
  EXPECT_EQ(refused.find("eyJ"), std::string::npos) << refused;

  Node wrong = service_account();
  wrong.set("token_uri", "http://tokens.example/");
  variables_["GOOGLE_APPLICATION_CREDENTIALS"] = file("key.json", wrong);
  EXPECT_NE(bearer()->token().error().message.find("for everybody on the way to read"), std::string::npos);
  wrong.set("private_key", "-----BEGIN PRIVATE KEY-----\nhush\n");
  variables_["GOOGLE_APPLICATION_CREDENTIALS"] = file("key.json", wrong);
  EXPECT_EQ(to_string(bearer()->token().error()).find("hush"), std::string::npos);
  variables_["GOOGLE_APPLICATION_CREDENTIALS"] = file("key.json", Node::map({{"type", "external_account"}}));
  EXPECT_NE(bearer()->token().error().message.find("external_account"), std::string::npos);
  variables_["GOOGLE_APPLICATION_CREDENTIALS"] = folder_.path() + "/none.json";
  EXPECT_EQ(bearer()->token().error().kind, ErrorKind::not_found);
}

TEST_F(Credentials, who_is_anonymous_looks_again_when_a_server_wants_a_token) {
  variables_["CLOUDSDK_AUTH_DISABLE_CREDENTIALS"] = "true";
  const auto source = bearer();
  EXPECT_EQ(source->token().value(), "");
  source->refused("");
  EXPECT_EQ(source->token().value(), "") << "there is still none";
  variables_.erase("CLOUDSDK_AUTH_DISABLE_CREDENTIALS");
  variables_["GCE_METADATA_HOST"] = google_.host();
  source->refused("");
  EXPECT_EQ(source->token().value(), "") << "not at every request";
  clock_->advance(Seconds(11.0));
  source->refused("");
  EXPECT_EQ(source->token().value(), "token-1");
}

}  // namespace
}  // namespace systole
