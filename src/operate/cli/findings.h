#pragma once
// Prints a doctor's findings.

#include <vector>

#include "operate/cli/command.h"
#include "operate/doctor/doctor.h"

namespace systole::cli {

// As text, or as the document {ok, warn, fail, findings: [{name, verdict, text, hint}]}. Returns `no` if one failed.
ExitCode print_findings(const std::vector<Finding>& findings, Context& context);

void add_doctor_xla(Subcommand doctor, Context& context);      // doctor_xla.cc
void add_doctor_devices(Subcommand doctor, Context& context);  // doctor_devices.cc

}  // namespace systole::cli
