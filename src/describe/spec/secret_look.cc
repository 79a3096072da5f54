// The forms that services document and that repository scanners look for (gitleaks' rules, GitHub's secret scanning
// patterns): a service's own prefix, then letters and digits.
#include "describe/spec/secret_look.h"

#include <algorithm>
#include <array>

#include "ground/base/letter_case.h"

namespace systole {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_letter_or_digit(char c) { return is_digit(c) || is_lower(c) || is_upper(c); }

struct Form {
  std::string_view prefix;
  std::size_t least;  // characters after the prefix, at least
  std::string_view what;
};

constexpr Form kForms[] = {
    {"hf_", 8, "a token of Hugging Face"},
    {"AKIA", 12, "a key of AWS"},
    {"ASIA", 12, "a key of AWS"},
    {"ghp_", 16, "a token of GitHub"},
    {"gho_", 16, "a token of GitHub"},
    {"ghu_", 16, "a token of GitHub"},
    {"ghs_", 16, "a token of GitHub"},
    {"ghr_", 16, "a token of GitHub"},
    {"github_pat_", 16, "a token of GitHub"},
    {"glpat-", 16, "a token of GitLab"},
    {"xoxb-", 10, "a token of Slack"},
    {"xoxp-", 10, "a token of Slack"},
    {"xoxa-", 10, "a token of Slack"},
    {"xapp-", 10, "a token of Slack"},
    {"sk-", 16, "a key of OpenAI's kind"},
    {"sk_live_", 16, "a key of Stripe"},
    {"AIza", 30, "a key of Google"},
    {"ya29.", 16, "a token of Google"},
    {"GOCSPX-", 16, "a secret of Google"},
    {"npm_", 30, "a token of npm"},
    {"pypi-", 16, "a token of PyPI"},
    {"nvapi-", 16, "a key of NVIDIA"},
    {"dckr_pat_", 16, "a token of Docker"},
    {"r8_", 30, "a token of Replicate"},
    {"dop_v1_", 30, "a token of DigitalOcean"},
    {"hvs.", 16, "a token of Vault"},
};

// Random text is long or has digits or capitals; hf_transfer, for example, is a package.
bool is_random(std::string_view text) {
  return text.size() >= 20 || std::ranges::any_of(text, [](char c) { return is_digit(c) || is_upper(c); });
}

bool holds_form(std::string_view text, const Form& form) {
  for (std::size_t at = text.find(form.prefix); at != text.npos; at = text.find(form.prefix, at + 1)) {
    if (at > 0 && (is_letter_or_digit(text[at - 1]) || text[at - 1] == '_')) continue;  // inside a word
    const std::string_view rest = text.substr(at + form.prefix.size());
    const auto end = std::ranges::find_if_not(
        rest, [](char c) { return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.'; });
    const std::string_view run(rest.begin(), end);
    if (run.size() >= form.least && is_random(run)) return true;
  }
  return false;
}

// scheme://user:password@host
bool holds_login(std::string_view text) {
  for (std::size_t at = text.find("://"); at != text.npos; at = text.find("://", at + 1)) {
    const std::string_view authority = text.substr(at + 3, text.find_first_of("/ ?#", at + 3) - at - 3);
    const std::size_t sign = authority.rfind('@'), colon = authority.find(':');
    if (sign == authority.npos || colon >= sign || colon + 1 == sign) continue;
    if (authority[colon + 1] != '$') return true;  // '$' marks a variable to be substituted
  }
  return false;
}

// Three base64 parts, of which two begin as JSON does.
bool holds_web_token(std::string_view text) {
  const std::size_t at = text.find("eyJ");
  return at != text.npos && text.find(".eyJ", at) != text.npos;
}

bool ends_with_any(std::string_view text, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return text.ends_with(end); });
}
bool holds_any(std::string_view text, std::initializer_list<std::string_view> parts) {
  return std::ranges::any_of(parts, [&](std::string_view part) { return text.find(part) != text.npos; });
}

// Values that are not secrets even under a name like TOKEN or KEY: switches, small numbers, paths, tokenizer words.
bool is_plain(std::string_view value) {
  if (value.size() <= 6 && std::ranges::all_of(value, is_digit)) return true;
  if (value.starts_with('/') || value.starts_with("./") || value.starts_with("~/") || value.starts_with("gs://"))
    return true;
  if ((value.front() == '<' && value.back() == '>') || (value.front() == '[' && value.back() == ']')) return true;
  const std::string word = lower_case(value);
  constexpr std::array<std::string_view, 8> kSwitches = {"true", "false", "yes", "no", "on", "off", "none", "null"};
  return std::ranges::find(kSwitches, word) != kSwitches.end();
}

std::string_view name_says(std::string_view name, std::string_view value) {
  const std::string upper = upper_case(name);
  if (ends_with_any(upper, {"_PATH", "_FILE", "_DIR", "_FOLDER", "_NAME"})) return "";  // a location
  if (holds_any(upper, {"PASSWORD", "PASSWD", "PASSPHRASE"})) return "its name is that of a password";
  if (holds_any(upper, {"SECRET", "PRIVATE_KEY"})) return "its name is that of a secret";
  if (is_plain(value)) return "";
  if (upper == "TOKEN" || ends_with_any(upper, {"_TOKEN", "_PAT", "APITOKEN", "AUTHTOKEN"}))
    return "its name is that of a token";
  if (upper == "KEY" || ends_with_any(upper, {"_KEY", "APIKEY"})) return "its name is that of a key";
  return ends_with_any(upper, {"_CREDENTIALS", "_CREDENTIAL"}) ? "its name is that of credentials" : "";
}

}  // namespace

std::string_view secret_form(std::string_view text) {
  if (text.find("-----BEGIN") != text.npos && text.find("PRIVATE KEY") != text.npos) return "a private key";
  if (text.find("\"private_key\"") != text.npos) return "a private key";
  if (holds_login(text)) return "a URL with a password";
  if (holds_web_token(text)) return "a web token";
  for (const Form& form : kForms)
    if (holds_form(text, form)) return form.what;
  return "";
}

std::string why_secret(std::string_view name, std::string_view value) {
  if (value.empty()) return "";
  if (const std::string_view form = secret_form(value); !form.empty()) return "its value is " + std::string(form);
  return std::string(name_says(name, value));
}

}  // namespace systole
