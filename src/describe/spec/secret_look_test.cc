#include "describe/spec/secret_look.h"

#include <gtest/gtest.h>

#include "describe/spec/testing/small_workload.h"

namespace systole {
namespace {

// Made up; no service issued these. In pieces, so that repository scanners do not report them either.
const std::string kHub = std::string("hf_") + "AbCdEfGhIjKlMnOpQrSt", kAws = std::string("AKIA") + "IOSFODNN7EXAMPLE",
                  kHubber = std::string("ghp_") + "0123456789abcdefghijABCDEFGHIJ012345",
                  kPem = std::string("-----BEGIN RSA ") + "PRIVATE KEY-----\nMIIE";

TEST(SecretLook, forms_are_known_wherever_they_stand) {
  for (const std::string& text : std::vector<std::string>{
           kHub, kAws, kHubber, kPem, "Bearer " + kHub, "--token=" + kHub, "postgres://me:hunter2@db:5432/x",
           std::string("eyJ") + "hbGciOiJIUzI1NiJ9.eyJ" + "zdWIiOiIxIn0.c2ln", "{\"private_key\": \"x\"}"})
    EXPECT_NE(secret_form(text), "") << text;
  for (const char* text : {"", "hf_transfer", "hf_hub_offline", "shf_AbCdEfGhIjKl", "https://example.com/a@b:c",
                           "https://me@example.com", "postgres://me:$PASSWORD@db", "sk-learn", "AKIA", "s3://AKIA/x",
                           "python3", "WARN", "/etc/ssl/key.pem", "a:b@c"})
    EXPECT_EQ(secret_form(text), "") << text;
}

TEST(SecretLook, names_say_it_of_any_value_but_a_plain_one) {
  for (const auto& [name, value] : {std::pair("DB_PASSWORD", "hunter2"),
                                    {"db_password", "1234"},
                                    {"PASSWD", "x"},
                                    {"WANDB_API_KEY", "0123abcd"},
                                    {"wandb_api_key", "0123abcd"},
                                    {"HF_TOKEN", "x"},
                                    {"TOKEN", "abc"},
                                    {"AWS_SECRET_ACCESS_KEY", "/wJalr"},
                                    {"OPENAI_APIKEY", "abc"},
                                    {"GIT_PAT", "abc"},
                                    {"GOOGLE_CREDENTIALS", "{}"},
                                    {"X", kAws.c_str()}})
    EXPECT_NE(why_secret(name, value), "") << name << "=" << value;
  for (const auto& [name, value] : {std::pair("NCCL_DEBUG", "WARN"),
                                    {"TOKENIZERS_PARALLELISM", "false"},
                                    {"HF_TOKEN", ""},
                                    {"HF_TOKEN_PATH", "/runs/token"},
                                    {"SSL_KEY", "/etc/ssl/key.pem"},
                                    {"PAD_TOKEN", "<pad>"},
                                    {"EOS_TOKEN", "50256"},
                                    {"HF_HUB_DISABLE_IMPLICIT_TOKEN", "1"},
                                    {"USE_AUTH_TOKEN", "True"},
                                    {"MONKEY", "banana"},
                                    {"GOOGLE_APPLICATION_CREDENTIALS", "/secrets/account.json"},
                                    {"AWS_SECRET_NAME", "mine"},
                                    {"MAX_TOKENS", "abc"}})
    EXPECT_EQ(why_secret(name, value), "") << name << "=" << value;
}

constexpr const char* kProgram = "systole: 1\nname: mine\ncommand: [python3, train.py]\n";

TEST(SecretLook, a_workload_with_one_in_the_open_is_refused_and_shows_none) {
  const std::string two = errors_of(std::string(kProgram) + "env: { HF_TOKEN: hunter2, A: " + kAws + " }\n");
  EXPECT_EQ(two,
            "job.yaml:4: error: env: HF_TOKEN is a secret (its name is that of a token), and everybody who may read "
            "this file would have it\n"
            "  hint: secrets: { HF_TOKEN: 'env:HF_TOKEN' } in its place, or file:/PATH, kubernetes:SECRET/KEY, "
            "secret-manager:PROJECT/NAME\n"
            "job.yaml:4: error: env: A is a secret (its value is a key of AWS), and everybody who may read this file "
            "would have it\n"
            "  hint: secrets: { A: 'env:A' } in its place, or file:/PATH, kubernetes:SECRET/KEY, "
            "secret-manager:PROJECT/NAME");
  // An error about another key on the same line shows no secret either.
  for (const std::string& text :
       std::vector<std::string>{"env: { PASSWORD: hunter2, RANK: 1 }\n", "env: { RANK: hunter2 }\n",
                                "env: { 'a b': hunter2 }\n", "env: { A: [hunter2] }\n", "env: [hunter2]\n"}) {
    const std::string said = errors_of(kProgram + text);
    EXPECT_NE(said.find("job.yaml:4: error:"), std::string::npos) << said;
    EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
  }
  for (const std::string& set : std::vector<std::string>{"env={DB_PASSWORD: hunter2}", "secrets={A: hunter2}"}) {
    const std::string said = errors_of(kProgram, {"", {set}});
    EXPECT_TRUE(said.starts_with("--set " + set.substr(0, set.find('=')) + ": error: ")) << said;
    EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
  }
  for (const std::string& text : std::vector<std::string>{"command: [python3, train.py, --token, " + kHub + "]\n",
                                                          "command: python3 train.py --token=" + kHub + "\n",
                                                          "command: python3 x\nlabels: { a: " + kHub + " }\n"}) {
    const std::string said = errors_of("systole: 1\nname: mine\n" + text);
    EXPECT_NE(said.find("here stands a token of Hugging Face"), std::string::npos) << said;
    EXPECT_EQ(said.find(kHub), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace systole
