/* A provider of tools in C. It has no JSON parser and needs none: the server has validated the
   arguments before it starts us, so {"number": 91} is an object with one integer in it. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int count, char **arguments)
{
    const char *name = count > 1 ? arguments[1] : "";

    if (strcmp(name, "list") == 0) {
        puts("{\"name\": \"primes.factor\", \"description\": \"Factor a number into primes.\","
             " \"inputSchema\": {\"type\": \"object\", \"required\": [\"number\"],"
             " \"properties\": {\"number\": {\"type\": \"integer\"}},"
             " \"additionalProperties\": false},"
             " \"annotations\": {\"readOnlyHint\": true}, \"_meta\": {\"timeout\": 5}}");
        return 0;
    }
    if (strcmp(name, "primes.factor") == 0) {
        char text[256] = "";
        const char *colon;
        size_t length = fread(text, 1, sizeof text - 1, stdin);
        text[length] = 0;
        colon = strchr(text, ':');
        double given = colon ? strtod(colon + 1, NULL) : 0;
        unsigned long long number;
        const char *comma = "";
        if (!(given >= 2 && given <= 1e12)) {
            fprintf(stderr, "number: expected 2 to 1,000,000,000,000\n");
            return 1;
        }
        number = (unsigned long long)given;
        putchar('[');
        for (unsigned long long prime = 2; number > 1; prime++) {
            if (prime * prime > number)
                prime = number;
            for (; number % prime == 0; number /= prime, comma = ", ")
                printf("%s%llu", comma, prime);
        }
        puts("]");
        return 0;
    }
    fprintf(stderr, "no such tool: %s\n", name);
    return 2;
}
