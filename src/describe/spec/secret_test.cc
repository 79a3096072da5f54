#include "describe/spec/secret.h"

#include <gtest/gtest.h>

#include "describe/spec/testing/small_workload.h"

namespace systole {
namespace {

using Source = SecretReference::Source;

TEST(Secret, a_reference_says_where_a_value_stands) {
  const auto variable = read_secret_reference("env:HF_TOKEN");
  ASSERT_TRUE(variable);
  EXPECT_EQ(variable->source, Source::environment);
  EXPECT_EQ(variable->name, "HF_TOKEN");
  const auto file = read_secret_reference("file:/home/me/to ken");
  ASSERT_TRUE(file);
  EXPECT_EQ(file->source, Source::file);
  EXPECT_EQ(file->name, "/home/me/to ken");
  const auto of_cluster = read_secret_reference("kubernetes:hub.tokens/read-only_1");
  ASSERT_TRUE(of_cluster);
  EXPECT_EQ(of_cluster->name, "hub.tokens");
  EXPECT_EQ(of_cluster->key, "read-only_1");
  const auto latest = read_secret_reference("secret-manager:my-project/hub_token");
  ASSERT_TRUE(latest);
  EXPECT_EQ(latest->resource(), "projects/my-project/secrets/hub_token/versions/latest");
  EXPECT_EQ(read_secret_reference("secret-manager:p/t/7")->version, "7");
}

TEST(Secret, what_is_no_reference_is_none) {
  for (const char* text : {"",
                           "hunter2",
                           "env:",
                           "env:1A",
                           "env:A B",
                           "env:A=1",
                           "file:",
                           "file:token",
                           "file:/a/",
                           "file:/a\nb",
                           "kubernetes:a",
                           "kubernetes:/k",
                           "kubernetes:a/",
                           "kubernetes:a/b/c",
                           "kubernetes:-a/b",
                           "secret-manager:p",
                           "secret-manager:p/",
                           "secret-manager:p/n/",
                           "secret-manager:p/n/1/2",
                           "secret-manager:$(id)/n",
                           "vault:a/b"})
    EXPECT_FALSE(read_secret_reference(text)) << text;
}

constexpr const char* kProgram = "systole: 1\nname: mine\ncommand: [python3, train.py]\n";

TEST(Secret, a_workload_keeps_references_and_shows_no_secret) {
  const Workload w = read(std::string(kProgram) + "secrets: { HF_TOKEN: 'kubernetes:hub/token', B: 'env:B' }\n");
  EXPECT_EQ(w.secrets.at("HF_TOKEN"), "kubernetes:hub/token");
  EXPECT_EQ(to_yaml(read(to_yaml(w))), to_yaml(w));
  // The secret itself instead of a reference: the message has a place, but neither the secret nor its line.
  for (const char* text :
       {"secrets: { HF_TOKEN: hunter2 }\n", "secrets: hunter2\n", "secrets: { 'a b': hunter2 }\n",
        "secrets: { RANK: hunter2 }\n", "secrets: { A: { b: hunter2 } }\n", "secrets: [hunter2]\n"}) {
    const std::string said = errors_of(std::string(kProgram) + text);
    EXPECT_NE(said.find("job.yaml:4: error:"), std::string::npos) << said;
    EXPECT_EQ(said.find("hunter2"), std::string::npos) << said;
  }
  const std::string key = errors_of(std::string(kSmall) + "checkpoint: { encryption_key: hunter2 }\n");
  EXPECT_NE(key.find("this is not env:NAME or file:PATH"), std::string::npos) << key;
  EXPECT_EQ(key.find("hunter2"), std::string::npos) << key;
}

TEST(Secret, a_variable_has_one_value) {
  const std::string said =
      errors_of(std::string(kProgram) + "env: { MODE: x }\nsecrets: { MODE: 'file:/home/me/token' }\n");
  EXPECT_NE(said.find("MODE is in env and in secrets"), std::string::npos) << said;
}

}  // namespace
}  // namespace systole
