// SingleFlight: many ask for the same thing at the same time; it is done once.
#pragma once
