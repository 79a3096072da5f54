#pragma once
// The list of error codes. A kind says what the caller does next; a code identifies the error, so that neither code nor
// scripts parse the message. Names are stable: they appear in JSON documents. Numbers are stable too: flight logs store
// them, so new codes go to the end.

#include <cstdint>
#include <optional>
#include <string_view>

namespace systole {

enum class ErrorCode : std::uint8_t {
  none,                 // the kind says enough
  missing_key,          // a document lacks a required key
  unknown_key,          // a document has a key that is not defined there
  unexpected_value,     // a value of another type, or out of its range
  no_such_name,         // no accelerator, machine or slice of the catalog has that name
  not_offered_there,    // the catalog has it, but in no allowed region or zone
  no_such_namespace,    // a Kubernetes namespace
  namespace_ends,       // the namespace is being deleted
  quota_exceeded,       // the quota of a namespace
  not_authenticated,    // the cluster does not know the caller
  forbidden,            // the cluster knows the caller but does not allow it
  machines_away,        // of a Slurm cluster: down, drained or otherwise unavailable now
  no_such_job,          // Slurm forgot it, or never had it
  flipped_bit,          // a step computed twice gave two results
  collective_mismatch,  // two ranks are in different collectives
  newer_version,        // a document or a file was written by a later program
  conflicting_keys,     // a key is invalid together with another, or without it
  no_such_environment,  // the document has no such environment
  no_such_command,
  no_such_option,
  no_such_run,
  price_unknown,            // the hourly price of a machine is unknown
  model_not_found,          // a server does not have the model that a request names; the name is OpenAI's
  context_length_exceeded,  // a text has more tokens than the model takes; the name is OpenAI's
  requirement_not_met,      // a metric of a model is not as a gate requires
};

// "missing_key"; "" for none.
std::string_view name_of(ErrorCode code);
// The code with this stored number; nothing if it comes from a later program.
std::optional<ErrorCode> error_code_of(std::uint64_t number);

}  // namespace systole
