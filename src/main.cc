// SPDX-License-Identifier: Apache-2.0
#include "commands/command.h"

int main(int argc, char** argv) { return cufit::commands::run(argc, argv); }
